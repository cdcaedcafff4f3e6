// Texts about files, in the twelve languages of the widget.

export const english = {
  attach: "Attach files",
  camera: "Take a photo",
  drop: "Drop files here",
  limit: "Up to {limit} each",
  list: "Files",
  remove: "Remove {name}",
  retry: "Upload {name} again",
  uploading: "Uploading {name}",
  uploaded: "{name} uploaded",
  tooLarge: "Too large. The limit is {limit}.",
  wrongType: "Files of this type are not accepted. Accepted: {types}.",
  tooMany: "You can send up to {n} files with a message.",
  empty: "This file is empty.",
  interrupted: "The upload failed. Please try again.",
  refused: "This file was not accepted.",
  gone: "This file is no longer available.",
  wait: "Your message will be sent once its files are uploaded.",
  blocked: "Some files were not uploaded. Remove them or try again.",
  dismiss: "Dismiss",
  download: "Download {name}",
  downloadFailed: "The download failed. Please try again.",
};

export type FileTexts = Record<keyof typeof english, string>;

/** Texts in the order of the English ones. */
const lines: Record<string, string> = {
  de: "Dateien anhängen|Foto aufnehmen|Dateien hier ablegen|Bis zu {limit} pro Datei|Dateien|{name} entfernen|{name} erneut hochladen|{name} wird hochgeladen|{name} hochgeladen|Zu groß. Erlaubt sind höchstens {limit}.|Dateien dieses Typs werden nicht angenommen. Erlaubt: {types}.|Sie können bis zu {n} Dateien mit einer Nachricht senden.|Diese Datei ist leer.|Das Hochladen ist fehlgeschlagen. Bitte versuchen Sie es noch einmal.|Diese Datei wurde nicht angenommen.|Diese Datei ist nicht mehr verfügbar.|Ihre Nachricht wird gesendet, sobald die Dateien hochgeladen sind.|Einige Dateien wurden nicht hochgeladen. Entfernen Sie sie oder versuchen Sie es noch einmal.|Schließen|{name} herunterladen|Das Herunterladen ist fehlgeschlagen. Bitte versuchen Sie es noch einmal.",
  fr: "Joindre des fichiers|Prendre une photo|Déposez les fichiers ici|Jusqu’à {limit} par fichier|Fichiers|Retirer {name}|Envoyer {name} à nouveau|Envoi de {name}|{name} a été envoyé|Trop volumineux. La limite est de {limit}.|Ce type de fichier n’est pas accepté. Types acceptés : {types}.|Vous pouvez joindre jusqu’à {n} fichiers à un message.|Ce fichier est vide.|L’envoi du fichier a échoué. Veuillez réessayer.|Ce fichier n’a pas été accepté.|Ce fichier n’est plus disponible.|Votre message partira dès que les fichiers seront envoyés.|Certains fichiers n’ont pas été envoyés. Retirez-les ou réessayez.|Fermer|Télécharger {name}|Le téléchargement a échoué. Veuillez réessayer.",
  es: "Adjuntar archivos|Hacer una foto|Suelte los archivos aquí|Hasta {limit} por archivo|Archivos|Quitar {name}|Subir {name} de nuevo|Subiendo {name}|{name} subido|Demasiado grande. El límite es de {limit}.|No se aceptan archivos de este tipo. Se aceptan: {types}.|Puede enviar hasta {n} archivos con un mensaje.|Este archivo está vacío.|No se pudo subir el archivo. Inténtelo de nuevo.|Este archivo no se aceptó.|Este archivo ya no está disponible.|Su mensaje se enviará cuando se hayan subido los archivos.|Algunos archivos no se subieron. Quítelos o inténtelo de nuevo.|Cerrar|Descargar {name}|La descarga falló. Inténtelo de nuevo.",
  it: "Allega file|Scatta una foto|Rilascia qui i file|Fino a {limit} per file|File|Rimuovi {name}|Carica di nuovo {name}|Caricamento di {name}|{name} caricato|Troppo grande. Il limite è {limit}.|I file di questo tipo non sono accettati. Tipi accettati: {types}.|Puoi inviare fino a {n} file con un messaggio.|Questo file è vuoto.|Il caricamento non è riuscito. Riprova.|Questo file non è stato accettato.|Questo file non è più disponibile.|Il messaggio sarà inviato appena i file saranno caricati.|Alcuni file non sono stati caricati. Rimuovili o riprova.|Chiudi|Scarica {name}|Il download non è riuscito. Riprova.",
  pt: "Anexar ficheiros|Tirar uma foto|Largue os ficheiros aqui|Até {limit} por ficheiro|Ficheiros|Remover {name}|Carregar {name} de novo|A carregar {name}|{name} carregado|Demasiado grande. O limite é {limit}.|Ficheiros deste tipo não são aceites. Aceites: {types}.|Pode enviar até {n} ficheiros com uma mensagem.|Este ficheiro está vazio.|O carregamento falhou. Tente de novo.|Este ficheiro não foi aceite.|Este ficheiro já não está disponível.|A sua mensagem será enviada assim que os ficheiros forem carregados.|Alguns ficheiros não foram carregados. Remova-os ou tente de novo.|Fechar|Transferir {name}|A transferência falhou. Tente de novo.",
  nl: "Bestanden toevoegen|Foto maken|Zet bestanden hier neer|Maximaal {limit} per bestand|Bestanden|{name} verwijderen|{name} opnieuw uploaden|{name} wordt geüpload|{name} is geüpload|Te groot. De limiet is {limit}.|Bestanden van dit type worden niet geaccepteerd. Toegestaan: {types}.|U kunt maximaal {n} bestanden met een bericht versturen.|Dit bestand is leeg.|Het uploaden is mislukt. Probeer het opnieuw.|Dit bestand is niet geaccepteerd.|Dit bestand is niet meer beschikbaar.|Uw bericht wordt verstuurd zodra de bestanden zijn geüpload.|Sommige bestanden zijn niet geüpload. Verwijder ze of probeer het opnieuw.|Sluiten|{name} downloaden|Het downloaden is mislukt. Probeer het opnieuw.",
  pl: "Dołącz pliki|Zrób zdjęcie|Upuść pliki tutaj|Do {limit} na plik|Pliki|Usuń {name}|Prześlij ponownie {name}|Przesyłanie {name}|Przesłano {name}|Plik jest za duży. Limit to {limit}.|Pliki tego typu nie są przyjmowane. Dozwolone: {types}.|Z wiadomością można wysłać maksymalnie {n} plików.|Ten plik jest pusty.|Przesyłanie nie powiodło się. Spróbuj ponownie.|Ten plik nie został przyjęty.|Ten plik nie jest już dostępny.|Wiadomość zostanie wysłana, gdy pliki zostaną przesłane.|Niektóre pliki nie zostały przesłane. Usuń je lub spróbuj ponownie.|Zamknij|Pobierz {name}|Pobieranie nie powiodło się. Spróbuj ponownie.",
  tr: "Dosya ekle|Fotoğraf çek|Dosyaları buraya bırakın|Dosya başına en fazla {limit}|Dosyalar|{name} dosyasını kaldır|{name} dosyasını yeniden yükle|{name} yükleniyor|{name} yüklendi|Çok büyük. Sınır {limit}.|Bu türdeki dosyalar kabul edilmiyor. Kabul edilenler: {types}.|Bir mesajla en fazla {n} dosya gönderebilirsiniz.|Bu dosya boş.|Yükleme başarısız oldu. Lütfen yeniden deneyin.|Bu dosya kabul edilmedi.|Bu dosya artık mevcut değil.|Dosyalar yüklendiğinde mesajınız gönderilecek.|Bazı dosyalar yüklenemedi. Bunları kaldırın veya yeniden deneyin.|Kapat|{name} dosyasını indir|İndirme başarısız oldu. Lütfen yeniden deneyin.",
  ja: "ファイルを添付|写真を撮る|ここにファイルをドロップ|1ファイル{limit}まで|ファイル|{name}を削除|{name}を再アップロード|{name}をアップロードしています|{name}をアップロードしました|ファイルが大きすぎます。上限は{limit}です。|この形式のファイルは受け付けていません。対応形式：{types}|1件のメッセージで送信できるファイルは{n}個までです。|このファイルは空です。|アップロードできませんでした。もう一度お試しください。|このファイルは受け付けられませんでした。|このファイルは利用できなくなりました。|ファイルのアップロードが終わるとメッセージが送信されます。|アップロードできなかったファイルがあります。削除するか、もう一度お試しください。|閉じる|{name}をダウンロード|ダウンロードできませんでした。もう一度お試しください。",
  zh: "添加文件|拍照|将文件拖放到此处|每个文件最大 {limit}|文件|移除 {name}|重新上传 {name}|正在上传 {name}|{name} 已上传|文件过大，上限为 {limit}。|不接受此类型的文件。可接受：{types}。|一条消息最多可发送{n}个文件。|此文件为空。|上传失败，请重试。|此文件未被接受。|此文件已不可用。|文件上传完成后将发送您的消息。|部分文件未上传，请移除或重试。|关闭|下载 {name}|下载失败，请重试。",
  ar: "إرفاق ملفات|التقاط صورة|أفلت الملفات هنا|حتى {limit} لكل ملف|الملفات|إزالة {name}|رفع {name} مرة أخرى|جارٍ رفع {name}|تم رفع {name}|الملف كبير جدًا. الحد الأقصى {limit}.|لا تُقبل الملفات من هذا النوع. الأنواع المقبولة: {types}.|يمكنك إرسال {n} ملفات كحد أقصى مع الرسالة.|هذا الملف فارغ.|تعذّر رفع الملف. يُرجى المحاولة مرة أخرى.|لم يُقبل هذا الملف.|لم يعد هذا الملف متاحًا.|ستُرسل رسالتك بعد اكتمال رفع الملفات.|لم تُرفع بعض الملفات. أزلها أو حاول مرة أخرى.|إغلاق|تنزيل {name}|تعذّر التنزيل. يُرجى المحاولة مرة أخرى.",
};

/** Returns the texts in a language, in English if there are none. */
export function textsOf(code: string): FileTexts {
  const texts = lines[code]?.split("|");
  if (!texts) return english;
  return Object.fromEntries(Object.keys(english).map((name, at) => [name, texts[at]])) as FileTexts;
}
